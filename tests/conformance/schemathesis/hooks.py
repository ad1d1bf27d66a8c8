"""What a schema cannot say: bodies that are meant to be right are made so in these points.

A body that follows the schemas can still name a question that it does not have, a profile that is not
configured, a minimum above its maximum. The documents of the dialects say in words that such bodies
are refused; here they are mended, and only where the body is meant to be accepted. README.md lists
every point.
"""

import json

import schemathesis


# What the tool adds to headers that it means to be wrong; HTTP has servers ignore unknown ones.
UNKNOWN = "x-schemathesis-unknown-property"
# gmlx takes 2 for a count, and not 2.0, which to JSON Schema is an integer too.
WHOLE = ("samples", "auto_max")
# Fewest labels that a dialect of a model has, and enough examples for a fit that takes no minutes.
LABELS_MAX, EXAMPLES_MAX = 26, 20


@schemathesis.hook
def filter_case(context, case):
    return UNKNOWN not in (case.headers or {})


@schemathesis.hook
def map_case(context, case):
    meta = case.meta
    longer_deadline(case)
    if meta is None or not meta.generation.mode.is_positive or not isinstance(case.body, dict):
        return case
    path = case.operation.path
    body = case.body
    if case.media_type == "multipart/form-data":
        # Names of other parts stand in a header, where not every character can.
        body = case.body = {"request": body["request"]}
        body = body["request"]
    if meta.phase.name == "stateful" and "prewarm" in path and body.get("states"):
        body["state"] = body.pop("states")[0]
    if isinstance(body, dict):
        mend(path, body)
    return case


def longer_deadline(case):
    """Where no room and no time are both 503, a deadline that cannot be met looks like a failure."""
    sent = (case.headers or {}).get("x-docket-timeout-ms")
    if case.operation.path.startswith(("/gmlx/", "/vllm/")) and str(sent).isdigit() and 0 < int(sent) < 1_000:
        case.headers["x-docket-timeout-ms"] = "1000"


def mend(path, body):
    if path.endswith("/import"):
        body["tasks"] = []
    elif path.endswith("/tasks"):
        order(path, body)
    elif path.endswith("/answer"):
        letters(body.get("questions"))
    else:
        decision(body)


def decision(body):
    """A decision, a batch or a prewarm."""
    if "profile" in body:
        body["profile"] = None
    if isinstance(body.get("model"), str):
        body["model"] = body["model"].replace("@", "")
    questions = body.get("questions")
    for name in WHOLE:
        if isinstance(body.get(name), float):
            body[name] = int(body[name])
    if isinstance(questions, dict):
        told_apart(questions)
        named(questions)
        if body.get("ask"):
            body["ask"] = list(questions)
    elif isinstance(questions, list):
        for question in questions:
            distinct_choices(question)


def told_apart(questions):
    """gmlx does not see spaces around ids: of those that are the same without them the first stays."""
    seen = set()
    for id in list(questions):
        if id.strip() in seen:
            del questions[id]
        seen.add(id.strip())


def named(questions):
    """Questions by id: what they name is one that stands before them."""
    before = {}
    for id, question in questions.items():
        if not isinstance(question, dict):
            continue
        if isinstance(question.get("ask_if"), dict):
            wanted = zip(question["ask_if"].values(), before.items())
            conditions = {name: answers[: max(1, len(values))] for values, (name, answers) in wanted}
            question["ask_if"] = conditions or None
        if isinstance(question.get("depends_on"), list):
            question["depends_on"] = list(before)[: len(question["depends_on"])]
        criteria = question.get("criteria")
        if question.get("type") == "number" and isinstance(criteria, dict):
            ordered(criteria)
        if question.get("type") == "score" and isinstance(criteria, list):
            distinct_levels(question)
        if answers := answers_of(question):
            before[id] = answers


def answers_of(question):
    """The names of a question's answers, where conditions can name them."""
    criteria = question.get("criteria")
    match question.get("type"):
        case "noul":
            return ["yes", "no"]
        case "choice" if isinstance(criteria, (dict, list)):
            return list(criteria)
    return None


def ordered(criteria):
    least, most = criteria.get("min"), criteria.get("max")
    if is_number(least) and is_number(most) and least > most:
        criteria["min"], criteria["max"] = most, least


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def distinct_levels(question):
    """vLLM compares levels by their texts: 1 and "1" are the same."""
    levels = question["criteria"]
    if len({str(level) for level in levels}) < len(levels):
        question["criteria"] = [f"level {index}" for index in range(len(levels))]


def distinct_choices(question):
    """OpenAI's choices differ in their values, whatever their descriptions say."""
    choices = question.get("choices") if isinstance(question, dict) else None
    if not isinstance(choices, list):
        return
    values = {json.dumps(choice.get("value")) for choice in choices}
    if len(values) < len(choices):
        for index, choice in enumerate(choices):
            choice["value"] = f"choice {index}"


def letters(questions):
    """Questions of the letters route: one is derived from the first that is read, or is a noul."""
    source = None
    for question in questions if isinstance(questions, list) else []:
        if not isinstance(question, dict):
            continue
        if question.get("derive") is None:
            if source is None:
                options = ["yes", "no"] if question.get("kind") == "noul" else question["options"]
                source = questions.index(question), options[0]
        elif source is None:
            question.clear()
            question["kind"] = "noul"
            source = questions.index(question), "yes"
        else:
            question["derive"] = {"from": source[0], "option": source[1]}


def order(path, body):
    """A registration: all examples ask the first one's question, and have an answer that it has."""
    examples = body["examples"] = body["examples"][:EXAMPLES_MAX]
    request = examples[0]["request"]
    fewer_options(request["questions"])
    decision(request)
    answer = first_answer(request["questions"])
    held = body.get("certify") if isinstance(body.get("certify"), dict) else {}
    if held.get("examples"):
        held["examples"] = held["examples"][:EXAMPLES_MAX]
    if isinstance(held.get("min_examples"), float):
        held["min_examples"] = int(held["min_examples"])
    for example in examples + (held.get("examples") or []):
        example["request"], example["answer"] = request, answer
    if "/abstention/" in path:
        body["option"], body["match"] = {"append": "unknown"}, "imajev_extension"


def fewer_options(questions):
    for question in questions if isinstance(questions, list) else questions.values():
        criteria = question.get("criteria")
        if isinstance(criteria, list):
            question["criteria"] = criteria[:LABELS_MAX]
        elif isinstance(criteria, dict) and question["type"] == "choice":
            question["criteria"] = dict(list(criteria.items())[:LABELS_MAX])
        for field in ("choices", "levels"):
            if field in question:
                question[field] = question[field][:LABELS_MAX]


def first_answer(questions):
    question = questions[0] if isinstance(questions, list) else next(iter(questions.values()))
    match question["type"]:
        case "noul" | "predicate":
            return "yes"
        case "score":
            return 0
    if "choices" in question:
        values = [choice["value"] for choice in question["choices"]]
        plain = [value if isinstance(value, str) else json.dumps(value) for value in values]
        is_plain = len(set(plain)) == len(plain) and all(value.strip() for value in plain)
        return plain[0] if is_plain else json.dumps(values[0], ensure_ascii=False)
    return next(iter(question["criteria"]))
