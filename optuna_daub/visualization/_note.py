"""The note on a study in optuna-dashboard: its leader, its cost and its forecasts, in Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence

import optuna
from optuna.trial import FrozenTrial

from optuna_daub.study import log
from optuna_daub.study import records
from optuna_daub.study.agreement import sample_agreement
from optuna_daub.study.one_row import learners_name
from optuna_daub.study.results import BestLearner
from optuna_daub.study.results import best_learner
from optuna_daub.study.results import no_scores
from optuna_daub.visualization._allocations import AllocationsRecord
from optuna_daub.visualization._allocations import allocations_record
from optuna_daub.visualization._axes import UNITS
from optuna_daub.visualization._axes import label
from optuna_daub.visualization._axes import sign_of
from optuna_daub.visualization._numbers import amount
from optuna_daub.visualization._numbers import said


MAX_TABLE_LEARNERS = 20
"""Largest number of learners in the table of the study's note."""


def summary(study: optuna.Study, rows: Sequence[FrozenTrial], learners_id: int | None) -> str:
    """Return leader, lead, cost and what others could reach, in Markdown."""
    best = best_learner(study)
    if best is None:
        why = no_scores(study)
        return f"{why[0].upper()}{why[1:]}."
    standing, rival = "is the best" if best.is_final else "leads", best.rival_bound
    score = said(best.score, *(() if rival is None else (rival,)))
    lines = [
        f"**{literal(label(best))}** {standing}: score {score} on {best.size:,} examples.",
        *(() if rival is None else (_gap(study, best, rival),)),
        f"Why: {literal(best.reason)}.",
        *((best.promise,) if best.promise else ()),
        _expense(*(allocations_record(study, unit, 0) for unit in UNITS)),
    ]
    if ranking := _ranking(study):
        lines.append(ranking)
    if learners_id is not None:
        name = literal(learners_name(study))
        lines.append(f"One learner, one trial: [{name}]({page(learners_id)}).")
    return "\n".join(f"* {line}" for line in lines) + "\n\n" + _forecasts(study, rows)


def _ranking(study: optuna.Study) -> str:
    """Return a sentence on how well the smallest samples rank learners. Empty if unknown."""
    found = sample_agreement(study).sizes
    if not found:
        return ""
    first = found[0]
    interval = f"90 %: {first.lower:.2f} to {first.upper:.2f}"
    return (
        f"Small samples: rank correlation {first.rank_correlation:.2f} ({interval}) between "
        f"scores of {first.learners} learners on {first.size:,} examples and on all the data."
    )


def _gap(study: optuna.Study, best: BestLearner, rival_bound: float) -> str:
    gap, bound = said(abs(rival_bound - best.score)), said(rival_bound, best.score)
    if sign_of(study) * (best.score - rival_bound) >= 0:
        return f"It is {gap} ahead of what any other may still reach ({bound})."
    return f"Another may still come out {gap} ahead of it (bound {bound})."


def _expense(examples: AllocationsRecord, seconds: AllocationsRecord) -> str:
    """Return the cost in examples and seconds, compared with training everything."""
    if not seconds.spent:
        return f"{examples.spending}."
    whole = amount(seconds.everything)
    text = f"{examples.spending}; {seconds.share} of the {whole} seconds that "
    projected = seconds.everything - seconds.measured
    if projected <= 0:
        return f"{text}this takes."
    how_many = f"{amount(projected)} of them" if seconds.measured else "all"
    return f"{text}this would take ({how_many} projected from smaller sizes)."


def _forecasts(study: optuna.Study, rows: Sequence[FrozenTrial]) -> str:
    """Return a table of the foremost learners' forecasts, in Markdown."""
    facts = [
        (row, learner)
        for row in rows
        if row.values and (learner := records.read_summary(row, "learner")) is not None
    ]
    sign = sign_of(study)
    dropped = {i for row, i in facts if records.read_summary(row, "state") == "dropped"}
    facts.sort(key=lambda fact: (fact[1] in dropped, -sign * fact[0].values[0], fact[1]))
    promotions = sum(max(len(row.intermediate_values) - 1, 0) for row in rows)
    lines = ["| learner | on all the data | bound | rests on |", "|---|---|---|---|"]
    listed = facts[:MAX_TABLE_LEARNERS]
    values = [row.values[0] for row, _ in listed]  # their digits tell the learners apart
    for row, learner in listed:
        bound, score = records.read_summary(row, "bound"), records.read_summary(row, "score")
        kind = "forecast" if records.read_summary(row, "forecast") else "score"
        kind = f"dropped, {kind}" if learner in dropped else kind
        size = records.read_summary(row, "training_size")
        link = f"[{learner}]({page(log.study_id(study), learner)})"
        reach = "" if bound is None else said(bound, *values)
        known = f"{said(score, *values)} on {size:,} examples"
        lines.append(f"| {link} | {kind} {said(row.values[0], *values)} | {reach} | {known} |")
    more = len(facts) - MAX_TABLE_LEARNERS
    rest = f" {more:,} more learners are not listed." if more > 0 else ""
    return "\n".join(lines) + (
        f"\n\nA forecast rests on the learner's last score and on {promotions:,} "
        f"promotion{'s' * (promotions != 1)} to more data, of all learners of this study.{rest}"
    )


def page(study_id: int, number: int | None = None) -> str:
    """Return the path of optuna-dashboard's page of a study, or of one of its trials."""
    trial = "" if number is None else f"/trials?numbers={number}"
    return f"/dashboard/studies/{study_id}{trial}"


def literal(text: str) -> str:
    """Return a user's text as Markdown that shows it unchanged.

    It may be a category or an error.

    >>> print(literal("<b> | a_b* &lt;"))
    \\<b\\> \\| a\\_b\\* \\&lt;
    """
    return re.sub(r"([\\`*_{}\[\]<>#|!~&])", r"\\\1", " ".join(text.split()))
