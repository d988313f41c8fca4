"""``schedule``, ``scheduler`` and ``channels``: what is done again and again, and where reports are sent."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Annotated, Any

import typer

from profsvc.cli.common import Output, channels_of, engine_of, files_of, pairs, put, say
from profsvc.errors import ServiceError

group = typer.Typer(no_args_is_help=True, help="What is done again and again: reports, backups, upkeep.")
channel_group = typer.Typer(no_args_is_help=True, help="Where reports are sent: named in the file of PROFSVC_CHANNELS.")
COLUMNS = (
    "schedule_id", "kind", "project", "cron", "zone", "arguments", "enabled", "next_at", "last_due_at", "last_state",
    "last_message",
)  # fmt: skip
CHANNEL_COLUMNS = ("channel", "kind", "to")


def timer_part() -> ModuleType:
    """Return the scheduler; raise `ServiceError` where what it needs is not installed."""
    try:
        from profsvc import scheduler
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in {"apscheduler", "tzlocal"}:
            raise
        raise ServiceError(f"the scheduler needs more ({error}); run: pip install 'profsvc[server]'") from None
    return scheduler


@group.command()
def add(
    context: typer.Context,
    kind: Annotated[str, typer.Argument(help="nightly, prune, vacuum or backup.")],
    cron: Annotated[str, typer.Option(help="Minute, hour, day of the month, month, day of the week.")],
    zone: Annotated[str, typer.Option(help="Zone whose clock it goes by, such as Europe/Berlin.")] = "UTC",
    project: Annotated[str, typer.Option(help="Only this project; nightly and prune alone.")] = "",
    channel: Annotated[list[str], typer.Option(help="Channel that gets the nightly report; repeatable.")] = [],
    setting: Annotated[
        list[str],
        typer.Option("--set", help="KEY=VALUE, what else the kind takes, such as folder=/backups; repeatable."),
    ] = [],
) -> None:
    """Have something done again and again, by `profsvc serve` or `profsvc scheduler`, once however many of them run.

    A time that the clock skips in spring is due an hour later; of one that comes twice in autumn the first counts.

    Kinds: nightly [channel]; prune older_than [keep_tagged]; vacuum; backup folder [keep] [with_files].

    Examples:

      profsvc schedule add nightly --cron "0 6 * * *" --zone Europe/Berlin --channel team

      profsvc schedule add backup --cron "30 3 * * 0" --set folder=/backups --set keep=8
    """
    from profsvc import channels

    scheduler = timer_part()
    channels.chosen(channels_of(), channel)
    said = [("channel", name) for name in channel] + [
        pair for text in setting for pair in pairs("--set", [text]).items()
    ]
    engine = engine_of(context)
    number = scheduler.add(engine, kind, cron, zone, said, project or None)
    row = _row(engine, number)
    say(f"schedule {number}: {kind}, next at {row['next_at']}; `profsvc serve` and `profsvc scheduler` see to it")


def _row(engine: Any, number: int) -> dict[str, Any]:
    from profsvc import store

    return store.select(engine, "v1_schedules", schedule_id=number)[0]


@group.command("list")
def list_(context: typer.Context, output: Output = "table") -> None:
    """List the schedules: when each is due next, and how it went the last time; v1_schedules and v1_slots hold it all.

    Example:

      profsvc schedule list
    """
    from profsvc import store

    rows = store.select(engine_of(context), "v1_schedules")
    put(COLUMNS, rows, output)
    if not rows:
        say('nothing is scheduled; such as: profsvc schedule add nightly --cron "0 6 * * *"')


Number = Annotated[int, typer.Argument(help="The schedule by its number.")]


@group.command()
def remove(context: typer.Context, schedule: Number) -> None:
    """Remove a schedule and the record of its slots.

    Example:

      profsvc schedule remove 1
    """
    from profsvc import store

    store.remove_schedule(engine_of(context), schedule)
    say(f"schedule {schedule} is removed")


@group.command()
def rest(context: typer.Context, schedule: Number) -> None:
    """Let a schedule rest until `profsvc schedule resume`.

    Example:

      profsvc schedule rest 1
    """
    timer_part().rest(engine_of(context), schedule)
    say(f"schedule {schedule} rests")


@group.command()
def resume(context: typer.Context, schedule: Number) -> None:
    """Have a schedule done again; what it missed while it rested is not made up for.

    Example:

      profsvc schedule resume 1
    """
    timer_part().resume(engine_of(context), schedule)
    say(f"schedule {schedule} is done again")


@group.command()
def run(context: typer.Context, schedule: Number) -> None:
    """Do what a schedule does now, besides its times.

    Example:

      profsvc schedule run 1
    """
    engine = engine_of(context)
    slot = timer_part().run(engine, files_of(engine), channels_of(), schedule)
    if slot["state"] != "done":
        again = "; a scheduler tries it again" if slot["state"] == "waiting" else ""
        raise ServiceError(f"{slot['message']}{again}")
    say(slot["message"])


def scheduler(context: typer.Context) -> None:
    """Work off the schedules until it is stopped; what is under way then is finished, a second Ctrl-C ends at once.

    `profsvc serve` does so too; any number may run on one store. Its log is lines of JSON on stderr.

    Example:

      profsvc scheduler
    """
    from profsvc.web.log import to_stderr

    part = timer_part()
    engine = engine_of(context)
    channels = channels_of()
    to_stderr()
    with stopping() as stop, part.running(engine, files_of(engine), channels, say):
        while not stop.wait(1.0):
            pass


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """Give an event that Ctrl-C and SIGTERM set; a second one ends the process at once, as they do elsewhere."""
    stop = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def heard(number: int, _: object) -> None:
        stop.set()
        signal.signal(number, signal.SIG_DFL)

    for number in before:
        signal.signal(number, heard)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@channel_group.command("list")
def channels_list(output: Output = "table") -> None:
    """List the channels that the file of PROFSVC_CHANNELS names, and where they lead; never a secret.

    Example:

      profsvc channels list
    """
    rows = [
        {
            "channel": name,
            "kind": channel.kind,
            "to": ", ".join(channel.options.get("to", []))
            or channel.options.get("folder", "the address in its secret"),
        }
        for name, channel in channels_of().items()
    ]
    put(CHANNEL_COLUMNS, rows, output)
    if not rows:
        say("PROFSVC_CHANNELS names no file with channels, so reports are sent nowhere")


@channel_group.command("test")
def channels_test(
    channel: Annotated[list[str], typer.Argument(help="Channels by name.")],
) -> None:
    """Send a message that says that it is a test.

    Example:

      profsvc channels test team
    """
    from profsvc import channels

    failed = False
    for one in channels.chosen(channels_of(), channel):
        (done,) = channels.deliver(channels.trial(one.name), [one])
        say(f"{done.channel}: {'delivered' if done.delivered else 'not delivered'}: {done.said}")
        failed |= not done.delivered
    if failed:
        raise ServiceError("not every channel took the message")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(group, name="schedule", epilog="Example: profsvc schedule list")
    app.command()(scheduler)
    app.add_typer(channel_group, name="channels", epilog="Example: profsvc channels list")
