from .connection.kept_answers import kept_answer as kept_answer
from .connection.postgres import retry as retry
from .connection.replica import Place as Place, Replica as Replica
from .connection.timestamps import format_time as format_time, parse_time as parse_time
from .connection.transactions import keep_connections as keep_connections, snapshot as snapshot
from .connection.urls import address as address
from .ingest.blob_store import (
    BlobStore as BlobStore,
    blob_store_of as blob_store_of,
    open_blob as open_blob,
    spool_folder as spool_folder,
    store_id as store_id,
    storing_blob as storing_blob,
    unpack_folder as unpack_folder,
)
from .ingest.duplicates.shared_launches import (
    duplicate_messages as duplicate_messages,
    files_by_metrics as files_by_metrics,
    mark_duplicates_of_run as mark_duplicates_of_run,
)
from .ingest.incoming_file import (
    IncomingFile as IncomingFile,
    arriving_file as arriving_file,
    open_incoming as open_incoming,
    write_chunk as write_chunk,
)
from .ingest.refusals import save_refusal as save_refusal
from .ingest.runs import (
    RunInfo as RunInfo,
    StoredUpload as StoredUpload,
    UploadInfo as UploadInfo,
    check_run_names as check_run_names,
    describe_run as describe_run,
    find_upload as find_upload,
    stored_file_names as stored_file_names,
    parse_measured_at as parse_measured_at,
    reserve_run_ids as reserve_run_ids,
)
from .ingest.pages.compiled import state_of_pages as state_of_pages
from .ingest.pages.copies import state_of_copies as state_of_copies
from .ingest.upload import write_upload as write_upload
from .ingest.archived_runs import archived_runs as archived_runs, require_rows_of as require_rows_of
from .maintenance.archive.archiving import (
    Archive as Archive,
    Month as Month,
    archive_month as archive_month,
    closed_months as closed_months,
    finish_interrupted as finish_interrupted,
)
from .maintenance.archive.restoring import Restored as Restored, restore_month as restore_month
from .maintenance.backup import Backup as Backup, backup as backup
from .maintenance.checks import Check as Check, require_writable as require_writable, run_checks as run_checks
from .maintenance.cleanup import (
    UnneededFiles as UnneededFiles,
    discard_blob as discard_blob,
    remove_unneeded as remove_unneeded,
    unneeded_files as unneeded_files,
    vacuum as vacuum,
)
from .maintenance.deletion import (
    aged_runs as aged_runs,
    content_summary as content_summary,
    delete_aged_runs as delete_aged_runs,
    delete_run as delete_run,
    delete_upload as delete_upload,
    deleted_upload as deleted_upload,
    deleted_uploads as deleted_uploads,
    read_age as read_age,
    rereading as rereading,
    restoring as restoring,
)
from .maintenance.migrations import upgrade as upgrade
from .maintenance.readiness import (
    is_current as is_current,
    latest_revision as latest_revision,
    schema_revision as schema_revision,
    schema_state as schema_state,
)
from .maintenance.run_changes import change_run as change_run
from .maintenance.sqlite_snapshot import write_snapshot as write_snapshot
from .opening import (
    connect as connect,
    create_loader as create_loader,
    create_reader as create_reader,
    is_server as is_server,
    is_server_of as is_server_of,
    open_reader as open_reader,
    open_store as open_store,
    open_to_read as open_to_read,
)
from .queries.kernels.antipatterns import (
    executed_instructions as executed_instructions,
    lost_of_kernels as lost_of_kernels,
    saved_by_cause as saved_by_cause,
)
from .queries.frames import (
    characterizations as characterizations,
    counters as counters,
    criteria as criteria,
    device_attributes as device_attributes,
    launches as launches,
    metrics as metrics,
    models as models,
    potential as potential,
    rules as rules,
    runs as runs,
    table as table,
    uploads as uploads,
)
from .queries.rows import (
    find_run as find_run,
    newest_characterizations as newest_characterizations,
    results_without_launch as results_without_launch,
    select as select,
    sensors as sensors,
    size_is_stored as size_is_stored,
    upload as upload,
)
from .queries.kernels.history import (
    criterion_of_kernel as criterion_of_kernel,
    durations_of_kernel as durations_of_kernel,
    kernel_not_found as kernel_not_found,
    kernels_named as kernels_named,
    kernels_with_same_short_name as kernels_with_same_short_name,
    means_of_kernel as means_of_kernel,
    potential_of_kernel as potential_of_kernel,
    powers_of_load as powers_of_load,
    recent_kernels as recent_kernels,
)
from .queries.kernels.means import (
    kernel_metrics as kernel_metrics,
    kernel_shapes as kernel_shapes,
    kernel_times as kernel_times,
)
from .queries.kernels.presence import has_kernel_metrics as has_kernel_metrics
from .queries.kernels.power import (
    mean_counters as mean_counters,
    newest_runs as newest_runs,
    powers_of_loads as powers_of_loads,
)
from .queries.launches.largest import (
    costly_causes as costly_causes,
    count as count,
    kernels_by_time as kernels_by_time,
    launch_numbers as launch_numbers,
    launch_rows as launch_rows,
    longest_launches as longest_launches,
    transfers_by_kind as transfers_by_kind,
)
from .queries.launches.facets import costly_launches as costly_launches, launch_facets as launch_facets
from .queries.launches.listing import (
    ALL_LAUNCHES as ALL_LAUNCHES,
    LAUNCH_ORDERS as LAUNCH_ORDERS,
    LaunchFilter as LaunchFilter,
    count_launches as count_launches,
    list_launches as list_launches,
)
from .queries.launches.measured import (
    measured_launches as measured_launches,
    metric_layouts as metric_layouts,
    time_without_metrics as time_without_metrics,
)
from .queries.traces.memory import StoredTrace as StoredTrace, traces_of_run as traces_of_run
from .queries.nightly_series import (
    BINARY_TAG as BINARY_TAG,
    MAX_UPLOADS_BACK as MAX_UPLOADS_BACK,
    nightly_runs as nightly_runs,
    predictions_of_runs as predictions_of_runs,
    projects as projects,
    refusals_between as refusals_between,
    series_of_runs as series_of_runs,
    uploads_of_spans as uploads_of_spans,
    uploads_between as uploads_between,
)
from .queries.traces.operations import operations as operations
from .queries.runs.comparison import (
    clocks_of_run as clocks_of_run,
    kernels_of_run as kernels_of_run,
    previous_run as previous_run,
)
from .queries.runs.facts import (
    commits_of_runs as commits_of_runs,
    facts_of_runs as facts_of_runs,
    names_of_runs as names_of_runs,
    time_by_kernel as time_by_kernel,
)
from .queries.runs.listing import (
    MAX_COUNTED_RUNS as MAX_COUNTED_RUNS,
    RUN_ORDERS as RUN_ORDERS,
    RunFilter as RunFilter,
    RunPage as RunPage,
    list_runs as list_runs,
    run_groups as run_groups,
)
from .queries.launches.source_lines import (
    executed_by_opcode as executed_by_opcode,
    machine_code as machine_code,
    has_source as has_source,
    launches_with_source as launches_with_source,
    stalls_of_lines as stalls_of_lines,
)
from .queries.traces.timelines import timeline as timeline
from .queries.traces.events import (
    EarlyLaunches as EarlyLaunches,
    names_of as names_of,
    range_totals as range_totals,
    ranges_named as ranges_named,
    trace_streams as trace_streams,
)
from .queries.traces.lanes import (
    Trace as Trace,
    TracedLane as TracedLane,
    graphs_without_kernels as graphs_without_kernels,
    traces_with_times as traces_with_times,
)
from .queries.traces.exported import (
    EVENT_KINDS as EVENT_KINDS,
    samples_between as samples_between,
    trace_events as trace_events,
    untimed_events as untimed_events,
)
from .queries.traces.recordings import (
    Recording as Recording,
    recordings as recordings,
    titles_of_recordings as titles_of_recordings,
)
from .queries.traces.timed_events import TimedEvents as TimedEvents, timed_events as timed_events
from .queries.view_conditions import FILTERS as FILTERS, Condition as Condition
from .queries.view_pages import (
    JSON_COLUMNS as JSON_COLUMNS,
    MAX_ROWS as MAX_ROWS,
    Page as Page,
    column_kinds_of as column_kinds_of,
    key_column as key_column,
    list_view as list_view,
    parse_json_columns as parse_json_columns,
    select_statement as select_statement,
)
from .queries.launches.wide_metrics import wide_values as wide_values
from .results.board_power import (
    earlier_power_of_board as earlier_power_of_board,
    runs_by_board as runs_by_board,
)
from .results.findings import (
    MANUAL_STATES as MANUAL_STATES,
    StateChange as StateChange,
    differences_of_findings as differences_of_findings,
    findings_of_series as findings_of_series,
    findings_of_night as findings_of_night,
    follow_repeated_uploads as follow_repeated_uploads,
    known_findings as known_findings,
    series_of_finding as series_of_finding,
    set_finding as set_finding,
    state_history as state_history,
    stored_states as stored_states,
)
from .results.finished_parts import (
    LAUNCHES_PART as LAUNCHES_PART,
    POWER_PART as POWER_PART,
    change_count as change_count,
    unfinished as unfinished,
)
from .results.memory_traces import save_trace as save_trace
from .results.power import (
    Readings as Readings,
    has_sensors as has_sensors,
    last_samples as last_samples,
    launch_times as launch_times,
    marks_of_run as marks_of_run,
    save_power as save_power,
    sensor_readings as sensor_readings,
    sensors_of_run as sensors_of_run,
)
from .results.predictions import (
    MAX_PREDICTIONS as MAX_PREDICTIONS,
    UNCHANGED_REASONS as UNCHANGED_REASONS,
    criteria_of_kernels as criteria_of_kernels,
    kernel_properties as kernel_properties,
    kernel_work as kernel_work,
    predicted_speedups as predicted_speedups,
    prediction_sources as prediction_sources,
    save_predictions as save_predictions,
    scored_predictions as scored_predictions,
)
from .results.renames import (
    any_renames as any_renames,
    decide_rename as decide_rename,
    known_renames as known_renames,
    rename_decisions as rename_decisions,
    run_with_both_kernels as run_with_both_kernels,
)
from .results.reports import (
    Delivery as Delivery,
    NightlyRecord as NightlyRecord,
    OutdatedReportError as OutdatedReportError,
    adjacent_reports as adjacent_reports,
    delete_report as delete_report,
    report_contents as report_contents,
    save_delivery as save_delivery,
    save_report as save_report,
    save_slot_deliveries as save_slot_deliveries,
)
from .results.wall_time import save_wall_time as save_wall_time
from .results.kept_results import (
    KeptResults as KeptResults,
    device_of_run as device_of_run,
    kept_results as kept_results,
)
from .results.writer import Scope as Scope, describe_device as describe_device, save_results as save_results
from .sandbox.rules import Rows as Rows, parameter_names as parameter_names
from .sandbox.user_query import Answer as Answer, export as export, query as query
from .schema.catalog import VIEWS as VIEWS, column_kinds as column_kinds, quote_literal as quote_literal
from .schema.contents.run_views import ALL_BRANCHES as ALL_BRANCHES
from .schema.results.predictions import (
    PARTIAL_KINDS as PARTIAL_KINDS,
    PARTIAL_REASON as PARTIAL_REASON,
    SCORED_AS_BOUND as SCORED_AS_BOUND,
)
from .schema.view_definition import FLAGS as FLAGS
from .service.saved_queries import (
    delete_query as delete_query,
    find_query as find_query,
    list_queries as list_queries,
    save_query as save_query,
)
from .service.schedules import (
    MANUAL_PREFIX as MANUAL_PREFIX,
    Slot as Slot,
    add_schedule as add_schedule,
    enable_schedule as enable_schedule,
    end_slot as end_slot,
    list_schedules as list_schedules,
    postpone_slot as postpone_slot,
    remove_schedule as remove_schedule,
    renew_slot as renew_slot,
    save_next_time as save_next_time,
    take_over_slot as take_over_slot,
    take_slot as take_slot,
)
from .service.tokens import (
    FULL_ACCESS as FULL_ACCESS,
    SCOPES as SCOPES,
    Grant as Grant,
    create_token as create_token,
    find_grant as find_grant,
    list_tokens as list_tokens,
    requires_token as requires_token,
    revoke_token as revoke_token,
    token_name as token_name,
)
