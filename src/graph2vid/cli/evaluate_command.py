"""``graph2vid evaluate``: experiments, whose tables are saved and shown as soon as they are ready."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import entry_points
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from graph2vid import _evaluation_options as asked
from graph2vid._deprecated import warn_renamed
from graph2vid._options import Options
from graph2vid.cli.derived_options import HELP_ALL, given, needing_torch, refuse, with_options
from graph2vid.cli.outputs import save_json
from graph2vid.cli.progress import Tell, progress
from graph2vid.cli.terminal_table import show_table
from graph2vid.errors import InputError

if TYPE_CHECKING:
    from graph2vid.evaluate import Report

DATASETS = {
    "salads50": "50 Salads, and others in the layout of action segmentation.",
    "framewise": "Frame-wise scores of any network, in the layout of action segmentation.",
    "crosstask": "CrossTask: how-to videos of many tasks, by captions or features.",
    "youcook2": "YouCook2: cooking videos with sentences, by captions.",
    "captaincook4d": "CaptainCook4D: recordings with expert graphs; simulated evidence.",
    "captioned": "A folder of captioned videos of your own.",
    "featured": "A folder of videos of your own with features.",
    "synthetic": "Random procedures in random legal orders; simulated evidence.",
}
"""The datasets that come with graph2vid; other packages offer theirs as entry points."""

_NOT_IN_COMMAND = ("json", "markdown", "plots", "workers", HELP_ALL)
"""Options that say where results go, not what they are."""

AnyOptions = TypeVar("AnyOptions", bound=Options)

_Data = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", help="The folder of the data.", rich_help_panel="Data")
]
_Workers = Annotated[
    int | None, typer.Option("--workers", metavar="N", min=1, help="Processes and threads; all processors by default.")
]
_Old = Annotated[list[str] | None, typer.Option("--option", "-o", metavar="NAME=VALUE", hidden=True)]


def dataset(
    context: typer.Context, *, data: _Data = None, options: asked.ExperimentOptions, output: asked.PlotOptions
) -> None:
    """Evaluate the methods of grounding side by side, with every metric, interval and time.

    Methods: per-clip argmax, bag of steps, linear procedure, flow graphs (mined from the training split, or given), and
    the true order: what knowing it would give. All of them read the same costs.
    """
    name = context.info_name or ""
    if not options.extended and (name != "framewise" or options.extended is not None):
        refuse(context, ["tune_for"], "no costs are learnt; --extended names features that have some")
    if output.plots is None:
        refuse(context, ["video"], "no video is drawn; --plots names the folder of pictures")
    if options.methods is not None:
        kinds = {name.partition(":")[0] for name in options.methods}
        if not options.extended and "graph" not in kinds:
            refuse(context, ["min_support", "tolerance"], "they are for mined graphs, and --methods names none")
        if "linear" not in kinds:
            refuse(context, ["linear"], "--methods does not name linear")
    reader = dict(reader_option(text) for text in options.option)
    if options.protocol is not None:
        settings = asked.PROTOCOLS[options.protocol]
        options = replace(options, **{key: value for key, value in settings.items() if not given(context, key)})

    def experiment(tell: Tell) -> Iterator[Report]:
        from graph2vid.datasets import DATASETS, read_dataset
        from graph2vid.evaluate import DatasetExperiment

        if options.protocol is not None:
            known = inspect.signature(DATASETS.get(name)).parameters
            reader.update(
                {key: value for key, value in asked.PROTOCOL_READING.items() if key in known and key not in reader}
            )

        def load(**noise: Any) -> Any:
            return read_dataset(name, data, skip_bad=options.skip_bad, **(reader | noise))

        return DatasetExperiment(load, options, tell).run()

    run_experiment(context, experiment, output)


def parser(
    context: typer.Context,
    *,
    data: _Data = None,
    options: asked.ParserOptions,
    output: asked.ReportOptions,
    old: _Old = None,
) -> None:
    """Evaluate parsers of procedures; --data is the recipe flow graph corpus.

    They are compared with annotated recipes, with expert graphs and with what people do in real videos.
    """
    from graph2vid.evaluate import evaluate_parsers

    options, folder = _with_old(options, old), _needed(data, "the recipe flow graph corpus is")
    if (folds := options.cross_validate) is None:
        run_experiment(context, lambda tell: evaluate_parsers(folder, options, tell), output)
        return
    with needing_torch("training"):
        from graph2vid.learn.parser import cross_validate_parser
    run_experiment(context, lambda tell: cross_validate_parser(folder, folds, progress=tell), output)


def training(
    context: typer.Context,
    *,
    data: _Data = None,
    options: asked.ComparisonOptions,
    output: asked.ReportOptions,
    workers: _Workers = None,
    old: _Old = None,
) -> None:
    """Train features with each objective on the datasets in --data, and evaluate them on held-out videos.

    See `graph2vid train features`.
    """
    options, folder = _with_old(options, old), _needed(data, "the datasets are")
    with needing_torch("training"):
        from graph2vid.learn.features import evaluate_training as evaluate
    run_experiment(context, lambda tell: evaluate(folder, options, workers=workers, progress=tell), output)


def calibration(
    context: typer.Context,
    *,
    data: _Data = None,
    options: asked.CalibrationOptions,
    output: asked.PlotOptions,
    workers: _Workers = None,
    old: _Old = None,
) -> None:
    """Compare calibrated confidences with the truth on the datasets in --data.

    What graph2vid ships is evaluated, or a calibrator of yours (--calibration); with --cross-validate, calibrators that
    are fitted on the other tasks or splits.
    """
    from graph2vid.evaluate import evaluate_calibration as evaluate

    options, folder = _with_old(options, old), _needed(data, "the datasets are")
    run_experiment(context, lambda tell: evaluate(folder, options, workers=workers, progress=tell), output)


def check(
    context: typer.Context,
    *,
    data: _Data = None,
    options: asked.CheckOptions,
    output: asked.ReportOptions,
    old: _Old = None,
) -> None:
    """Look for steps skipped and done out of order in the recordings of CaptainCook4D in --data, under noise.

    See `graph2vid check`.
    """
    from graph2vid.evaluate import evaluate_check

    options, folder = _with_old(options, old), _needed(data, "CaptainCook4D is")
    run_experiment(context, lambda tell: evaluate_check(folder, options, tell), output)


def mining(
    context: typer.Context, *, data: _Data = None, options: asked.MiningOptions, output: asked.ReportOptions
) -> None:
    """Compare graphs mined from the recordings of CaptainCook4D in --data with the graphs of experts."""
    from graph2vid.evaluate import evaluate_mining

    folder = _needed(data, "CaptainCook4D is")
    run_experiment(context, lambda _: evaluate_mining(folder, options), output)


def _needed(data: Path | None, what: str) -> Path:
    if data is None:
        raise InputError(f"{what} read from a folder: say which with --data DIR")
    return data


def _with_old(options: AnyOptions, old: list[str] | None) -> AnyOptions:
    """Return options with those added that were given as ``-o NAME=VALUE``, as in the release before."""
    if not old:
        return options
    warn_renamed("-o NAME=VALUE", "--NAME VALUE")
    return type(options).from_mapping(vars(options) | dict(reader_option(text) for text in old))


def reader_option(text: str) -> tuple[str, Any]:
    """Read NAME=VALUE; words, numbers and lists of them become what they say."""
    name, sign, value = text.partition("=")
    if not sign or not name.strip():
        raise InputError(f"an option of the reader is NAME=VALUE, not {text!r}")
    values = [_value(part.strip()) for part in value.split(",")]
    return name.strip().replace("-", "_"), values[0] if len(values) == 1 else tuple(values)


def _value(text: str) -> Any:
    words: dict[str, Any] = {"true": True, "false": False, "none": None}
    for number in (int, float):
        with suppress(ValueError):
            return number(text)
    return words.get(text.lower(), text)


# -- results: saved and shown ------------------------------------------------------------------------------------


def run_experiment(
    context: typer.Context, experiment: Callable[[Tell], Iterator[Report]], output: asked.ReportOptions
) -> None:
    """Run an experiment; save what it finds at once, and show each table when it is whole.

    An interrupt goes on after what is ready was shown.
    """
    plots = getattr(output, "plots", None)
    if plots is not None:
        from graph2vid.evaluate import check_plots

        check_plots(plots)
    delivery = _Delivery(output, _command(context))
    tell: Tell = lambda *_: None  # noqa: E731

    def told(*now: Any) -> None:
        tell(*now)

    try:
        reports = experiment(told)
        is_over = False
        while not is_over:
            with progress("reading the data") as tell:
                is_over = not any(delivery.take(report) for report in reports)
            delivery.show()
    except (KeyboardInterrupt, SystemExit):
        delivery.finish()
        raise
    report = delivery.finish()
    if plots is not None and report is not None and report.draw is not None:
        # Tables first, pictures after: whatever becomes of a picture, the tables are kept.
        report.pictures = report.draw(plots)
        delivery.save_page(plots)


class _Delivery:
    """Saves a report as it grows, and shows its tables."""

    def __init__(self, output: asked.ReportOptions, command: str) -> None:
        from rich.console import Console

        self._output, self._command = output, command
        self._console = Console(highlight=False)
        self._report: Report | None = None
        self._shown = 0

    def take(self, report: Report) -> bool:
        """Save a report, and say whether it has a table to show."""
        self._report = report
        report.command = self._command
        json = self._output.json
        if json is not None and (json.is_file() or not json.exists()) and str(json) != "-":
            save_json(json, report.to_json())
        self.save_page()
        return self._shown < self._whole(report)

    @staticmethod
    def _whole(report: Report) -> int:
        return next((at for at, table in enumerate(report.tables) if table.is_growing), len(report.tables))

    def save_page(self, plots: Path | None = None) -> None:
        """Write the section of the page, with the pictures in ``plots``."""
        from graph2vid._files import read_text, write_text

        page = self._output.markdown
        if page is not None and self._report is not None:
            folder = "" if plots is None else Path(relpath(plots, page.parent)).as_posix()
            write_text(page, self._report.into_page(read_text(page) if page.exists() else "", folder))

    def show(self, upto: int | None = None) -> None:
        """Print the tables that are whole (or all ``upto`` a number) and were not printed yet."""
        if self._report is None:
            return
        upto = self._whole(self._report) if upto is None else upto
        if not self._shown and upto:
            self._console.print(f"{self._report.headline}.", markup=False)
        for table in self._report.tables[self._shown : upto]:
            self._console.print()
            self._console.print(f"{table.title}. {table.note}".rstrip(), markup=False, style="dim")
            show_table(self._console, table.columns, table.rows, table.words)
        self._shown = max(self._shown, upto)

    def finish(self) -> Report | None:
        """Write what goes to a stream, print what was not printed yet, and what is worth knowing beside the tables."""
        report = self._report
        if report is None:
            return None
        from graph2vid.evaluate import CUT_SHORT

        save_json(self._output.json, report.to_json())
        self.show(len(report.tables))
        self._console.print()
        cut_short = [] if report.is_complete else [CUT_SHORT]
        for style, lines in (("yellow", report.notes), ("dim", report.remarks), ("yellow", cut_short)):
            for line in lines:
                self._console.print(line, markup=False, soft_wrap=True, style=style)
        self._console.print(f"{report.seconds:.0f} s in all", markup=False)
        return report


def _command(context: typer.Context) -> str:
    """Return the command that repeats the evaluation: every option that was set, but not where results go."""
    words = context.command_path.split()
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if parameter.name in _NOT_IN_COMMAND or value == parameter.default or value in (None, (), []):
            continue
        if isinstance(value, bool):
            words.append(parameter.opts[0] if value else parameter.secondary_opts[0])
        else:
            for item in value if isinstance(value, list | tuple) else [value]:
                words += [parameter.opts[0], str(item)]
    return shlex.join(words)


commands = typer.Typer(
    no_args_is_help=True,
    help="Evaluate methods of grounding on a dataset, or parsers, training, confidences, order checks and mining.",
)
for _function in (parser, training, calibration, check, mining):
    commands.command()(with_options(_function))
for _name in dict.fromkeys((*DATASETS, *(point.name for point in entry_points(group="graph2vid.datasets")))):
    _help = f"{DATASETS.get(_name, 'A dataset of another package.')}\n\n{inspect.cleandoc(dataset.__doc__ or '')}"
    commands.command(_name, help=_help)(with_options(dataset))
