"""The official client of OpenAI (openai 3.57.0), unchanged: every type of question, its errors, its models.

usage: openai_client.py BASE_URL [KEY]; BASE_URL without /v1. Exit 0 ok, 1 fail. Run against a server of any dialect at
BASE_URL (its /v1/decisions) and, for models and errors of other routes, at BASE_URL/openai.
"""

import sys

import openai

base, key = sys.argv[1], (sys.argv[2] if len(sys.argv) > 2 else "none")
STATE = "I was charged twice for March. The refund was promised and never came. Fix it today."
QUESTIONS = [
    {"type": "predicate", "instructions": "Is the customer asking for money back?", "name": "refund"},
    {
        "type": "choice",
        "instructions": "Who should answer?",
        "name": "team",
        "choices": [{"value": "billing", "description": "payments"}, {"value": "환불"}, {"value": "true"}],
    },
    {"type": "choice", "instructions": "Is it urgent?", "choices": [{"value": True}, {"value": False}]},
    {
        "type": "score",
        "instructions": "How angry?",
        "name": "team",
        "levels": [{"label": "calm"}, {"label": "cross", "description": "complains"}, {"label": "furious"}],
    },
]


def check(decision):
    refund, team, urgent, anger = decision.answers
    assert (refund.type, refund.name) == ("predicate", "refund") and 0 <= refund.probability <= 1
    assert (team.type, team.name) == ("choice", "team") and 0 <= team.confidence <= 1
    assert [each.value for each in team.probabilities] == ["billing", "환불", "true"]
    assert abs(sum(each.probability for each in team.probabilities) - 1) < 1e-6
    best = max(team.probabilities, key=lambda each: each.probability)
    assert team.choice == best.value
    assert urgent.name is None and urgent.choice in (True, False) and isinstance(urgent.choice, bool)
    assert [(each.value, each.label) for each in anger.probabilities] == [(0, "calm"), (1, "cross"), (2, "furious")]
    assert abs(anger.score - sum(each.value * each.probability for each in anger.probabilities)) < 1e-6
    usage = decision.usage
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens and usage.output_tokens == 0
    assert 0 <= usage.input_tokens_details.cached_tokens <= usage.input_tokens
    assert usage.input_tokens_details.cache_write_tokens <= usage.input_tokens


def refused(error, act):
    try:
        act()
    except error as found:
        return found
    raise AssertionError(f"no {error.__name__}")


for prefix in ("", "/openai"):
    client = openai.OpenAI(base_url=f"{base}{prefix}/v1", api_key=key, max_retries=0)
    check(client.decisions.create(model="gpt-6-luna", input=STATE, questions=QUESTIONS, safety_identifier="u"))
    parts = [{"type": "input_text", "text": STATE}, {"type": "input_text", "text": "Thank you."}]
    message = {"role": "user", "content": parts}
    check(client.decisions.create(model="gpt-6-luna", input=[message], questions=QUESTIONS, prompt_cache_key="k"))
    bad = refused(
        openai.BadRequestError,
        lambda: client.decisions.create(model="m", input="x", questions=[{"type": "noul", "instructions": "?"}]),
    )
    assert (bad.type, bad.param, bad.code) == ("invalid_request_error", "questions[0].type", "invalid_value"), bad
    image = [{"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]}]
    bad = refused(
        openai.BadRequestError,
        lambda: client.decisions.create(model="m", input=image, questions=QUESTIONS),
    )
    assert bad.code == "unsupported_capability", bad

models = list(openai.OpenAI(base_url=f"{base}/openai/v1", api_key=key).models.list())
assert models and models[0].owned_by == "docket", models
missing = refused(openai.NotFoundError, lambda: client.chat.completions.create(model="m", messages=[]))
assert missing.code == "unknown_url", missing
print("OpenAI client OK", models[0].id)
