"""decisio's own client for LangChain, unchanged, against a running server.

    decisio_client.py BASE_URL     of a server with --dialect decisio, or of any, with /decisio behind it

It needs langchain-decisio 0.1.0. Prints `N checks passed`; exit 1 if one fails. Every answer of the fake
engine hangs on every token of its prompt, so there an equal answer means an equal prompt.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import sys
import time
import traceback
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_decisio import (
    Choice,
    ChoiceAnswer,
    DecisioClassifier,
    DecisioClient,
    DecisioError,
    Decision,
    DecisioRouter,
    Noul,
    Score,
    ScoreAnswer,
)

STATE = "I was charged twice in March and nobody has answered my letters."
TEAMS = {"billing": "payments and invoices", "access": "signing in", "bug": None, "환불 🙂": "refunds"}
LEVELS = ["calm", "annoyed", "furious"]
QUESTIONS = {
    "urgent": Noul("Must it be answered today?"),
    "threat": Noul("Is this a threat?", true="it threatens with a court", false="it does not"),
    "team": Choice("Which team should handle this?", TEAMS),
    "bare": Choice("Which word fits?", ["late", "early"]),
    "anger": Score("How angry is the customer?", LEVELS),
}
NEAR = 1e-6
CLOCKS_MS = 5.0
"""By how much the server's time may exceed the client's."""
TASK = "clients-tickets"
OFFICES = Choice("Which office takes this letter?", ["north", "south", "east", "west"])
LETTERS = 60


class Checks:
    """Each method whose name begins with `check_` is one."""

    def __init__(self, base: str):
        self.base = base.rstrip("/")
        self.client = DecisioClient(self.base, timeout=120)

    def ask(self, state: Any, questions: Mapping[str, Any] = QUESTIONS) -> Decision:
        """What a classifier makes of a state."""
        return DecisioClassifier(client=self.client, questions=questions).invoke(state)

    def check_every_type_of_question_is_answered_by_name(self) -> None:
        decision = self.ask(STATE)
        assert list(decision.answers) == list(QUESTIONS), list(decision.answers)
        for name in ("urgent", "threat"):
            assert 0.0 < decision.p_yes(name) < 1.0, decision[name]
        for name in ("team", "bare"):
            assert list(decision[name].probabilities) == list(QUESTIONS[name].options), decision[name]
            _is_choice(decision[name])
        _is_score(decision["anger"])

    def check_questions_may_come_with_each_call(self) -> None:
        asked = {"state": STATE, "questions": QUESTIONS}
        assert DecisioClassifier(self.base, timeout=120).invoke(asked).answers == self.ask(STATE).answers

    def check_a_question_alone_has_the_answer_that_it_has_among_others(self) -> None:
        together = self.ask(STATE)
        for name, question in QUESTIONS.items():
            alone = self.ask(STATE, {name: question})
            assert _near(alone[name], together[name]), (name, alone[name], together[name])

    def check_answers_hang_on_state_and_question(self) -> None:
        one = self.ask(STATE, {"q": Noul("Is it late?")}).p_yes("q")
        assert one != self.ask(STATE + " Help!", {"q": Noul("Is it late?")}).p_yes("q")
        assert one != self.ask(STATE, {"q": Noul("Is it early?")}).p_yes("q")

    def check_an_object_is_shown_as_lines_without_its_private_keys(self) -> None:
        lines = self.ask("subject: Charged twice\nbody: Please help.")
        shown = self.ask({"subject": "Charged twice", "_id": "c-17", "body": "Please help."})
        assert shown.answers == lines.answers, (shown, lines)

    def check_a_list_is_a_state(self) -> None:
        first = self.ask(["I was charged twice.", {"refunded": None}])
        other = self.ask(["I was charged twice.", {"refunded": True}])
        assert list(first.answers) == list(QUESTIONS) and first.answers != other.answers

    def check_messages_are_states(self) -> None:
        talk = [HumanMessage("I was charged twice."), AIMessage("When?"), HumanMessage("In March.")]
        roles = [("human", "I was charged twice."), ("ai", "When?"), ("human", "In March.")]
        listed = self.ask([{"role": role, "content": content} for role, content in roles])
        assert self.ask(talk).answers == listed.answers
        assert self.ask(ChatPromptTemplate.from_messages(roles).invoke({})).answers == listed.answers
        assert self.ask(talk[::-1]).answers != listed.answers
        assert self.ask(HumanMessage(STATE)).answers == self.ask(STATE).answers
        parts = [{"type": "text", "text": "I was charged"}, {"type": "text", "text": "twice."}]
        assert self.ask(HumanMessage(parts)).answers == self.ask("I was charged\ntwice.").answers

    def check_the_served_name_is_told_whatever_name_is_sent(self) -> None:
        served = [model["name"] for model in _fetch(self.base + "/v1/models")["models"]]
        named = DecisioClient(self.base, model="somebody/else", timeout=120)
        told = [self.ask(STATE).model, named.ask(STATE, QUESTIONS).model]
        assert told == [served[0]] * 2, (told, served)

    def check_usage_counts_the_state_once_and_a_token_for_each_question(self) -> None:
        one, other = ({name: QUESTIONS[name]} for name in ("team", "anger"))

        def tokens(state: str, asked: Mapping[str, Any]) -> int:
            return self.ask(state, asked).usage["input_tokens"]

        of_other = [tokens(state, one | other) - tokens(state, one) for state in (STATE, STATE * 3)]
        assert of_other[0] == of_other[1] > 0, of_other
        assert tokens(STATE, other) > of_other[0], "the state is not counted"
        assert self.ask(STATE).usage["output_tokens"] == len(QUESTIONS)

    def check_the_server_tells_its_time(self) -> None:
        began = time.perf_counter()
        told = self.ask(STATE, {"q": Noul("Is this timed?")}).server_ms
        took = (time.perf_counter() - began) * 1e3
        assert told is not None and 0 < told <= took + CLOCKS_MS, (told, took)

    def check_a_refused_field_is_named_in_the_detail(self) -> None:
        error = _refused(lambda: self.client.ask(None, QUESTIONS))
        assert error.status == 422 and isinstance(error.detail, list), (error.status, error.detail)
        found = [(one["type"], one["loc"]) for one in error.detail]
        kinds = [("string_type", "str"), ("dict_type", "dict[str,any]"), ("list_type", "list[any]")]
        assert found == [(kind, ["body", "state", tag]) for kind, tag in kinds], found
        assert all(isinstance(one["msg"], str) and "url" not in one for one in error.detail)

    def check_a_prompt_over_the_context_is_refused_with_a_text(self) -> None:
        error = _refused(lambda: self.client.ask("word " * 80_000, QUESTIONS))
        assert error.status == 422 and isinstance(error.detail, str) and error.detail, error.detail

    def check_a_refused_request_leaves_the_client_usable(self) -> None:
        before = self.ask(STATE).answers
        _refused(lambda: self.client.ask(7, QUESTIONS))
        assert self.ask(STATE).answers == before

    def check_health_tells_what_is_served(self) -> None:
        health = self.client.health()
        assert health["ok"] is True, health
        base = self.client.served_base()
        assert isinstance(base, str) and base and base == health["base"], base
        assert {"profile", "prompt_format", "systemone", "head_engine"} <= set(health), sorted(health)
        assert {"tasks", "readout_tasks", "abstention", "temperatures"} <= set(health["systemone"])

    def check_a_router_accepts_what_is_probable_and_falls_back_otherwise(self) -> None:
        top, probability = self.ask(STATE).top("team")
        ways = ((probability - NEAR, True), (probability + NEAR, False))
        for accept_at, accepted in ways:
            route = self._router(accept_at).invoke(STATE)
            assert (route.chosen, route.accepted) == (top, accepted), route
            assert route.name == (top if accepted else "person"), route
            assert math.isclose(route.probability, probability, abs_tol=NEAR / 10), route

    def check_a_router_runs_the_branch(self) -> None:
        names = [*TEAMS, "person"]
        branches = {name: RunnableLambda(lambda state, name=name: f"{name}: {state}") for name in names}
        routed = self._router(0.01).run_branches(branches).invoke(STATE)
        assert routed.output == f"{routed.route.chosen}: {STATE}", routed
        routed = asyncio.run(self._unsure(branches))
        assert (routed.output, routed.route.accepted) == (f"person: {STATE}", False), routed

    async def _unsure(self, branches: Mapping[str, Any]) -> Any:
        return (
            await self._router(1.0, DecisioClient(self.base, timeout=120))
            .run_branches(branches)
            .ainvoke(STATE)
        )

    def _router(self, accept_at: float, client: DecisioClient | None = None) -> DecisioRouter:
        client = client or self.client
        return DecisioRouter(QUESTIONS["team"], fallback="person", accept_at=accept_at, client=client)

    def check_calls_at_once_are_answered_each_with_its_own(self) -> None:
        states = [f"Letter {number}: {STATE}" for number in range(16)]
        alone = [self.ask(state).answers for state in states]
        assert len({json.dumps(_plain(answers)) for answers in alone}) == len(states)
        assert asyncio.run(self._at_once(states)) == alone
        together = DecisioClassifier(client=self.client, questions=QUESTIONS).batch(states)
        assert [decision.answers for decision in together] == alone

    async def _at_once(self, states: Sequence[str]) -> list[dict[str, Any]]:
        async with DecisioClient(self.base, timeout=120) as client:
            classifier = DecisioClassifier(client=client, questions=QUESTIONS)
            decisions = await asyncio.gather(*(classifier.ainvoke(state) for state in states))
            error = None
            try:
                await client.aask(None, QUESTIONS)
            except DecisioError as refused:
                error = refused
        assert error is not None and error.status == 422, error
        return [decision.answers for decision in decisions]

    def check_a_registered_task_is_named_and_does_what_its_record_says(self) -> None:
        with self._no_task():
            plain = self.ask(STATE, {"office": OFFICES})
            assert plain.tasks == [], plain.tasks
            record = self.client.register_task(_task(_examples()))
            # Four of five letters went north, whatever they say: the examples show that much.
            calibration = _part(record, "calibration")
            assert calibration["applied"] is True and calibration["reason"], record
            later = self.ask(STATE, {"office": OFFICES})
            assert later.tasks == [TASK], later.tasks
            expected = self._calibrated(plain["office"], calibration["bias"])
            assert _near(later["office"].probabilities, expected), (later, expected)
            _is_choice(later["office"])
            # A choice is known by its options in their order, and by nothing else.
            worded = self.ask(STATE, {"q": Choice("Where to?", list(OFFICES.options)), **QUESTIONS})
            assert worded.tasks == [TASK], worded.tasks
            turned = self.ask(STATE, {"office": Choice(OFFICES.instructions, list(OFFICES.options)[::-1])})
            assert turned.tasks == [], turned.tasks
        removed = self.ask(STATE, {"office": OFFICES})
        assert (removed.tasks, removed.answers) == ([], plain.answers), removed

    def _calibrated(self, answer: ChoiceAnswer, bias: Sequence[float]) -> dict[str, float]:
        """softmax(log p - bias) of the probabilities before the temperature, where there is one."""
        temperature = self.client.health()["systemone"]["temperatures"]["choice"]
        logs = [math.log(p) * temperature for p in answer.probabilities.values()]
        weights = [math.exp(log - one) for log, one in zip(logs, bias, strict=True)]
        return {key: weight / sum(weights) for key, weight in zip(answer.probabilities, weights, strict=True)}

    def check_a_task_that_cannot_be_is_refused(self) -> None:
        examples = _examples()
        no_option = [*examples[1:], {**examples[0], "answer": "nowhere"}]
        other = {"state": STATE, "questions": {"q": QUESTIONS["team"].to_wire()}}
        two = {"state": STATE, "questions": {name: QUESTIONS[name].to_wire() for name in ("team", "urgent")}}
        bad = {
            "an answer that is no option": _task(no_option),
            "examples of two questions": _task([*examples, {"request": other, "answer": "billing"}]),
            "a request of two questions": _task([{"request": two, "answer": "billing"}]),
            "no examples": {"id": TASK},
            "no id": {"examples": examples},
        }
        for what, task in bad.items():
            error = _refused(lambda task=task: self.client.register_task(task))
            assert error.status == 422 and "detail" in json.loads(error.detail), (what, error)
        assert self.ask(STATE, {"office": OFFICES}).tasks == [], "a refused task is applied"

    @contextlib.contextmanager
    def _no_task(self) -> Iterator[None]:
        """The task is neither there before nor afterwards."""
        with contextlib.suppress(urllib.error.HTTPError):
            _fetch(f"{self.base}/v1/tasks/{TASK}", "DELETE")
        try:
            yield
        finally:
            assert _fetch(f"{self.base}/v1/tasks/{TASK}", "DELETE") == {"removed": TASK}


def _is_choice(answer: ChoiceAnswer) -> None:
    values = list(answer.probabilities.values())
    assert math.isclose(sum(values), 1.0, abs_tol=NEAR), answer
    assert answer.probability == max(values), answer
    even = 1 / len(values)
    assert math.isclose(answer.confidence or 0, (max(values) - even) / (1 - even), abs_tol=NEAR), answer


def _is_score(answer: ScoreAnswer) -> None:
    values = list(answer.probabilities.values())
    places = [str(place) for place in range(len(LEVELS))]
    legend = dict(zip(places, LEVELS, strict=True))
    assert list(answer.probabilities) == places and answer.legend == legend, answer
    assert math.isclose(sum(values), 1.0, abs_tol=NEAR), answer
    assert math.isclose(answer.score, sum(place * p for place, p in enumerate(values)), abs_tol=NEAR), answer
    mode, middle = values.index(max(values)), (len(values) - 1) / 2
    spread = sum(p * abs(place - mode) for place, p in enumerate(values))
    even = sum(abs(place - middle) for place in range(len(values))) / len(values)
    assert math.isclose(answer.confidence or 0, max(0, 1 - spread / even), abs_tol=NEAR), answer


def _plain(answers: Any) -> Any:
    return {name: answer.model_dump() for name, answer in answers.items()}


def _near(one: Any, other: Any) -> bool:
    """Whether two answers are the same, but for the last digits of their numbers."""
    one, other = (value.model_dump() if hasattr(value, "model_dump") else value for value in (one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(_near(one[key], other[key]) for key in one)
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, abs_tol=NEAR)
    return bool(one == other)


def _refused(call: Callable[[], Any]) -> DecisioError:
    try:
        answered = call()
    except DecisioError as error:
        return error
    raise AssertionError(f"it was answered: {answered}")


def _part(record: Mapping[str, Any], name: str) -> dict[str, Any]:
    assert isinstance(record.get(name), dict), (name, record)
    return dict(record[name])


def _examples() -> list[dict[str, Any]]:
    offices = list(OFFICES.options)
    asked = {"office": OFFICES.to_wire()}
    places = [number // 5 % 3 + 1 if number % 5 == 0 else 0 for number in range(LETTERS)]
    requests = [{"state": f"Letter {number}.", "questions": asked} for number in range(LETTERS)]
    return [{"request": one, "answer": offices[place]} for one, place in zip(requests, places, strict=True)]


def _task(examples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"id": TASK, "examples": list(examples)}


def _fetch(url: str, method: str = "GET") -> Any:
    with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=60) as response:
        return json.load(response)


def main() -> int:
    """Runs all checks."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    checks = Checks(sys.argv[1])
    names = [name for name in vars(Checks) if name.startswith("check_")]
    failed = 0
    for name in names:
        try:
            getattr(checks, name)()
        except Exception:
            failed += 1
            print(
                f"FAILED {name.removeprefix('check_').replace('_', ' ')}",
                *traceback.format_exc().splitlines()[-6:],
                sep="\n  ",
            )
    print(f"{len(names) - failed} checks passed" + (f", {failed} failed" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
