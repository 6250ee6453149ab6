#!/usr/bin/env bash
# Plays the reviewer: fills in the return form of a packet and prints the answer.
# In real work a separate chat or a person does this; nf itself calls nobody.
#
#   examples/canned-answer.sh PACKET accept|reject > answer.txt
set -euo pipefail

packet=$1
verdict=$2
case $verdict in
    accept) evidence='"Do not you want to know who has taken it?" makes me want the answer.' ;;
    reject) evidence='Nobody in the first lines wants anything; the page can be put down.' ;;
    *) evidence='The text leaves the question open.' ;;
esac
# The evidence stands in a JSON string.
evidence=${evidence//\"/\\\\\"}

echo "Here is my answer."
echo
# The return form is the last fenced block of the packet.
awk '/^```json$/ { form = "" ; inside = 1 }
     inside      { form = form $0 "\n" }
     /^```$/     { inside = 0 }
     END         { printf "%s", form }' "$packet" |
    sed -e "s|\"verdict\": \"\"|\"verdict\": \"$verdict\"|" \
        -e "s|\"evidence\": \[\]|\"evidence\": [\"$evidence\"]|" \
        -e 's|"confidence": null|"confidence": 0.8|' \
        -e 's|"provider": ""|"provider": "canned"|' \
        -e 's|"model": ""|"model": "canned-answer.sh"|'
