#!/bin/sh
# The commit that is built, with a "+" where something that git keeps was changed since; nothing outside a checkout.
cd "$(dirname "$0")/.." || exit 1
commit=$(git rev-parse --short=12 HEAD 2>/dev/null) || exit 0
git diff --quiet HEAD 2>/dev/null || commit="$commit+"
echo "$commit"
