"""``schedule``, ``scheduler`` and ``channels``: scheduled jobs, and where reports are sent."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Annotated, Any

from click import Context

from profsvc.cli.console.common import (
    LimitOption,
    OutputOption,
    load_channels,
    open_engine,
    open_files,
    parse_pairs,
    print_message,
    print_rows,
)
from profsvc.cli.console.declaration import Argument, Group, Option
from profsvc.errors import ServiceError

group = Group(help="Scheduled jobs: nightly reports, backups and cleanup.")
channel_group = Group(help="Where reports are sent: mail, chats and folders listed in PROFSVC_CHANNELS.")
COLUMNS = (
    "schedule_id", "kind", "project", "cron", "zone", "arguments", "enabled", "next_at", "last_due_at", "last_state",
    "last_message",
)  # fmt: skip
CHANNEL_COLUMNS = ("channel", "kind", "to")


def load_scheduler() -> ModuleType:
    """Return the scheduler package; raise `ServiceError` where its dependencies are missing."""
    try:
        from profsvc import scheduler
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in {"apscheduler", "tzlocal"}:
            raise
        raise ServiceError(f"the scheduler needs more ({error}); run: pip install 'profsvc[server]'") from None
    return scheduler


@group.function()
def add(
    context: Context,
    kind: Annotated[str, Argument(help="nightly, prune, vacuum or backup.")],
    cron: Annotated[str, Option(help="Five fields: minute, hour, day of month, month, day of week.")],
    zone: Annotated[str, Option(help="Time zone of the fields, such as Europe/Berlin.")] = "UTC",
    project: Annotated[str, Option(help="Only this project; for nightly and prune.")] = "",
    channel: Annotated[list[str], Option(help="Channel that gets the nightly report; repeatable.")] = [],
    setting: Annotated[
        list[str],
        Option("--set", help="Further argument of the kind, such as folder=/backups; repeatable."),
    ] = [],
) -> None:
    """Schedule a job; profsvc serve or profsvc scheduler runs it exactly once per slot.

    A time that the clock skips in spring is due an hour later; of a repeated time in autumn the first counts.

    Kinds: nightly [channel]; prune older_than [keep_tagged]; vacuum; backup folder [keep] [with_files].

    Examples:

      profsvc schedule add nightly --cron "0 6 * * *" --zone Europe/Berlin --channel team

      profsvc schedule add backup --cron "30 3 * * 0" --set folder=/backups --set keep=8
    """
    from profsvc import channels

    scheduler = load_scheduler()
    channels.select_channels(load_channels(), channel)
    said = [("channel", name) for name in channel] + [
        pair for text in setting for pair in parse_pairs("--set", [text]).items()
    ]
    engine = open_engine(context)
    number = scheduler.add(engine, kind, cron, zone, said, project or None)
    row = _row(engine, number)
    print_message(f"schedule {number}: {kind}, next at {row['next_at']}; run by profsvc serve or profsvc scheduler")


def _row(engine: Any, number: int) -> dict[str, Any]:
    from profsvc import store

    return store.select(engine, "v1_schedules", schedule_id=number)[0]


@group.function("list")
def list_(context: Context, limit: LimitOption = 0, output: OutputOption = "table") -> None:
    """List the schedules: next time, last outcome; v1_schedules and v1_slots have the details.

    Example:

      profsvc schedule list
    """
    from profsvc import store

    rows = store.select(open_engine(context), "v1_schedules")
    print_rows(COLUMNS, rows, output, limit=limit)
    if not rows:
        print_message('nothing is scheduled; add a job with: profsvc schedule add nightly --cron "0 6 * * *"')


ScheduleNumber = Annotated[int, Argument(help="Number of the schedule, from: profsvc schedule list.", metavar="NUMBER")]


@group.function()
def remove(context: Context, schedule: ScheduleNumber) -> None:
    """Remove a schedule and the record of its slots.

    Example:

      profsvc schedule remove 1
    """
    from profsvc import store

    store.remove_schedule(open_engine(context), schedule)
    print_message(f"schedule {schedule} removed")


@group.function()
def pause(context: Context, schedule: ScheduleNumber) -> None:
    """Pause a schedule until `profsvc schedule resume`.

    Example:

      profsvc schedule pause 1
    """
    load_scheduler().pause(open_engine(context), schedule)
    print_message(f"schedule {schedule} paused")


group.function("rest", hidden=True)(pause)


@group.function()
def resume(context: Context, schedule: ScheduleNumber) -> None:
    """Resume a paused schedule; missed runs are skipped.

    Example:

      profsvc schedule resume 1
    """
    load_scheduler().resume(open_engine(context), schedule)
    print_message(f"schedule {schedule} resumed")


@group.function()
def run(context: Context, schedule: ScheduleNumber) -> None:
    """Run a schedule now, outside its timetable.

    Example:

      profsvc schedule run 1
    """
    engine = open_engine(context)
    slot = load_scheduler().run_now(engine, open_files(engine), load_channels(), schedule)
    if slot["state"] != "done":
        retry = "; a scheduler will retry it" if slot["state"] == "waiting" else ""
        raise ServiceError(f"{slot['message']}{retry}")
    print_message(slot["message"])


def scheduler(context: Context) -> None:
    """Run scheduled jobs until stopped; Ctrl-C finishes the running job, twice stops now.

    profsvc serve does so too; several schedulers may use one store. The log is JSON lines on stderr.

    Example:

      profsvc scheduler
    """
    from profsvc.web.http.json_log import log_to_stderr

    part = load_scheduler()
    engine = open_engine(context)
    channels = load_channels()
    log_to_stderr()
    with stop_on_signal() as stop, part.running(engine, open_files(engine), channels, print_message):
        while not stop.wait(1.0):
            pass


@contextmanager
def stop_on_signal() -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C and SIGTERM set; a second signal ends the process at once."""
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


@channel_group.function("list")
def channels_list(limit: LimitOption = 0, output: OutputOption = "table") -> None:
    """List the channels in the file of PROFSVC_CHANNELS and their targets, without secrets.

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
        for name, channel in load_channels().items()
    ]
    print_rows(CHANNEL_COLUMNS, rows, output, limit=limit)
    if not rows:
        print_message("PROFSVC_CHANNELS is not set, so reports are sent nowhere")


@channel_group.function("test")
def channels_test(
    channel: Annotated[list[str], Argument(help="Channels by name.")],
) -> None:
    """Send a test message to channels.

    Example:

      profsvc channels test team
    """
    from profsvc import channels

    failed = False
    for one in channels.select_channels(load_channels(), channel):
        (done,) = channels.deliver(channels.trial_message(one.name), [one])
        print_message(f"{done.channel}: {'delivered' if done.delivered else 'not delivered'}: {done.outcome}")
        failed |= not done.delivered
    if failed:
        raise ServiceError("not every channel accepted the message")


def register(app: Group) -> None:
    """Add the commands of this file."""
    app.add_group(group, "schedule", epilog="Example: profsvc schedule list")
    app.function()(scheduler)
    app.add_group(channel_group, "channels", epilog="Example: profsvc channels list")
