#!/usr/bin/env bash
# Creates a Python environment with PyFlink, its Kafka connector and what streamgp needs:
#
#     bash docker/flink-environment.sh DIR
#
# Needs Python 3.11, a package index and Maven Central; running Flink needs Java 17 as well. It is a
# separate environment because Beam, which PyFlink needs, requires an older numpy than River, though
# it works with the newer one: pip warns, but it runs. streamgp is installed from the checkout.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

directory=${1:?usage: bash docker/flink-environment.sh DIR}
flink=2.2.1
connector=5.0.0-2.2
maven=${MAVEN_CENTRAL:-https://repo1.maven.org/maven2}

python3 -m venv "$directory"
pip() { "$directory/bin/python" -m pip install --quiet --disable-pip-version-check "$@"; }
echo "installing PyFlink $flink, which takes a few minutes; pip's warning about apache-beam and numpy is harmless"
# The build of an old dependency needs pkg_resources, which newer setuptools lack.
pip 'setuptools<81' wheel
pip --no-build-isolation "apache-flink==$flink"
pip 'numpy>=2.2.5' .
lib=$("$directory/bin/python" -c 'import os, pyflink; print(os.path.dirname(pyflink.__file__))')/lib
jar=flink-sql-connector-kafka-$connector.jar
"$directory/bin/python" - "$maven/org/apache/flink/flink-sql-connector-kafka/$connector/$jar" "$lib/$jar" <<'EOF'
import sys
from pathlib import Path
from urllib.request import urlopen

url, path = sys.argv[1:]
part = Path(path).with_suffix(".part")
with urlopen(url, timeout=60) as response:
    part.write_bytes(response.read())
part.rename(path)
EOF
"$directory/bin/python" -c 'import pyflink.datastream, streamgp'
echo "$directory: PyFlink $flink with Kafka connector $connector"
