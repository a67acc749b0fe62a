#!/usr/bin/env python3
"""Reads a request of OTLP logs in binary protobuf from standard input, with the published messages, and prints it as JSON.

Fields that the published messages do not have are an error. Needs the packages of requirements-event-schemas.txt.
"""

import json
import sys

from google.protobuf import unknown_fields
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest


def check(message):
    for field in unknown_fields.UnknownFieldSet(message):
        sys.exit(f"decode_otlp: {message.DESCRIPTOR.full_name} has no field {field.field_number}")
    for field, value in message.ListFields():
        if field.message_type is not None:
            for nested in [value] if isinstance(value, Message) else value:
                check(nested)


def main():
    request = ExportLogsServiceRequest.FromString(sys.stdin.buffer.read())
    check(request)
    json.dump(MessageToDict(request, preserving_proto_field_name=True), sys.stdout)


if __name__ == "__main__":
    main()
