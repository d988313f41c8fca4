#!/usr/bin/env bash
# Uploads what a CI job measured, compares it with the fork point, and writes a summary in Markdown.
#
# In:  PROFSVC_URL and PROFSVC_TOKEN, or PROFSVC_STORE     the service or the store
#      CHECK_FILES      files to upload, separated by spaces; patterns are expanded
#      CHECK_PROJECT    project of the runs                        default: default
#      CHECK_BRANCH     branch that is checked                     default: the branch of git
#      CHECK_BASE       branch that it is compared with            default: main
#      CHECK_FAIL_ON    limits, separated by spaces                default: duration=5%
#      CHECK_SUMMARY    file that the summary is appended to       default: summary.md
#      CHECK_IS_FORK    true: the change is from a fork, which gets no token
#      CHECK_WHEN_AWAY  pass or fail while the service is unreachable; default: pass
# Out: exit code 0, 1 for a regression, else that of the command that failed.
set -uo pipefail

project=${CHECK_PROJECT:-default}
base=${CHECK_BASE:-main}
summary=${CHECK_SUMMARY:-summary.md}
commit=$(git rev-parse HEAD)
branch=${CHECK_BRANCH:-$(git rev-parse --abbrev-ref HEAD)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { # the title of the summary, and lines of text
  { printf '### profsvc: %s\n\n' "$1"; shift; printf '%s\n' "$@"; } >>"$summary"
}
quoted() { # what a command said, as a block in which nothing is markup
  printf '~~~~text\n'; sed 's/^~~~~*//' "$1" | tail -n 20; printf '~~~~\n'
}

plain() { # a name as Markdown in which nothing is markup
  printf '%s\n' "$1" | sed 's/&/\&amp;/g; s/</\&lt;/g; s/[][`*_|@#!\]/\\&/g'
}

if [ "${CHECK_IS_FORK:-false}" = true ] && [ -z "${PROFSVC_TOKEN:-}" ]; then
  say "not checked" "A change from a fork has no access to the token. A member of the project can run the job."
  exit 0
fi

# What cannot be sent is not kept for later: the machine of a job is gone then.
export PROFSVC_SPOOL="$work/spool"
# shellcheck disable=SC2086  # several files, and patterns
profsvc upload ${CHECK_FILES:?name the files to upload} --project "$project" --run "$branch ${commit:0:12}" \
  --commit "$commit" --tag "branch=$branch" -o csv >"$work/uploads.csv" 2>"$work/said"
code=$?
cat "$work/said" >&2
if [ $code -ne 0 ]; then
  say "upload failed" "The upload ended with exit code $code:" "" "$(quoted "$work/said")"
  exit $code
fi
# Kernel names do not stand in this table; the run id is the third column of its last row.
run=$(python3 -c 'import csv, sys; rows = list(csv.DictReader(open(sys.argv[1]))); print(rows[-1]["run_id"] if rows else "")' "$work/uploads.csv")
if [ -z "$run" ]; then
  say "not checked" "The service is unreachable, so nothing was uploaded."
  [ "${CHECK_WHEN_AWAY:-pass}" = pass ] && exit 0
  exit 5
fi

# The baseline is the newest run of the fork point, or of the nearest commit before it that was measured.
fork=$(git merge-base "origin/$base" HEAD 2>/dev/null || git merge-base "$base" HEAD 2>/dev/null)
commits=()
while read -r one; do
  [ "$one" = "$commit" ] || commits+=(--commit "$one")
done < <([ -z "$fork" ] || git rev-list --first-parent -n 50 "$fork")
before=""
if [ ${#commits[@]} -gt 0 ]; then
  profsvc runs --project "$project" "${commits[@]}" --limit 1 -o csv >"$work/runs.csv" || exit $?
  before=$(sed -n '2s/,.*//p' "$work/runs.csv")
fi
if [ -z "$before" ]; then
  say "no baseline yet" "No commit of $(plain "$base") before this one was measured. Run $run is stored."
  exit 0
fi

limits=()
for limit in ${CHECK_FAIL_ON:-duration=5%}; do limits+=(--fail-on "$limit"); done
profsvc compare "$before" "$run" "${limits[@]}" --no-record --summary "$summary"
