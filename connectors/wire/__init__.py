"""Messages as bytes: JSON, records of a broker, and error texts for malformed bytes.

- `codec`: messages <-> JSON; `explain`: error texts for malformed bytes.
- `inbound`: records -> inputs of the loop; `outbound`: messages -> records.
- `state_records`: records of the topics `state` and `consensus`.
- `record_lines`: records as lines of JSON, for files and pipes.
- `signatures`: proofs that an answer is its annotator's.

"""
