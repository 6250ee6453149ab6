# Read by compare.sh and callgrind.sh: the static build, and stores of given sizes that are kept between runs.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../target}
host=$(rustc --print host-tuple)
unset NF_DIR NF_SESSION NF_RUN NF_NONCE NF_OP NF_LOG NF_NOW NF_BOOT NF_SEED

# Sets NF to the release build, unless it names a program already.
build() {
    if [ -z "${NF:-}" ]; then
        (cd "$here/.." && cargo static --quiet)
        NF=$target/$host/release/nf
    fi
    NF=$(realpath "$NF")
}

# Makes the projects FOLDER/SIZE that are not there yet, in memory, and moves them to their disk.
stores() {
    local folder=$1 memory size
    mkdir -p "$folder"
    memory=$(mktemp -d /dev/shm/stores.XXXXXX)
    for size in "${@:2}"; do
        if [ ! -d "$folder/$size" ]; then
            echo "making a store of $size events" >&2
            "$here/seed.sh" "$NF" "$memory/$size" "$((size > 0 ? 3 : 0))"
            if ((size > 0)); then
                cargo run --quiet --release --locked --manifest-path "$here/../Cargo.toml" --example grow -- \
                    "$memory/$size" "$size" >&2
            fi
            # An index is of one place, and a copy has none.
            rm -rf "$memory/$size/.novelforge/index" "$folder/$size.new"
            cp -a "$memory/$size" "$folder/$size.new"
            mv "$folder/$size.new" "$folder/$size"
            rm -rf "${memory:?}/$size"
        fi
        # The first command makes the index.
        (cd "$folder/$size" && "$NF" status -q > /dev/null)
    done
    rmdir "$memory"
    sync -f "$folder"
}

# Events in a store's log.
events() { cat "$1"/.novelforge/log/*.jsonl | grep -o '"type":"[a-z]*\.[a-z_]*"' | wc -l; }

# The machine in one line.
machine() {
    local model
    model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)
    echo "machine: $(nproc) × $model, load $(cut -d' ' -f1-3 /proc/loadavg), $(stat -f -c %T "$1"), $(uname -sr)"
    echo "nf: $("$NF" --version), $(stat -c %s "$NF") bytes, $(file -bL "$NF" | grep -o '[a-z-]* linked')"
}
