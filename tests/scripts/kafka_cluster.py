#!/usr/bin/env python3
"""A cluster of brokers for tests: librdkafka's own, in this process, without a disk.

Prints the addresses of the brokers in a line, then the value of each record of the topic in a line. Ends with its standard input.
"""

import argparse
import os
import sys
import threading

from confluent_kafka import Consumer, KafkaException, Producer


def end_with_input():
    sys.stdin.read()
    os._exit(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("topic")
    parser.add_argument("--brokers", type=int, default=2)
    arguments = parser.parse_args()
    threading.Thread(target=end_with_input, daemon=True).start()
    quiet = {"log_level": 0}
    holder = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": arguments.brokers, **quiet})
    # Asking for the topic makes it.
    metadata = holder.list_topics(arguments.topic, timeout=30)
    addresses = ",".join(f"{broker.host}:{broker.port}" for broker in metadata.brokers.values())
    print(addresses, flush=True)
    consumer = Consumer({
        "bootstrap.servers": addresses, "group.id": "test", "auto.offset.reset": "earliest", **quiet})
    consumer.subscribe([arguments.topic])
    while True:
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error():
            raise KafkaException(message.error())
        kind, millis = message.timestamp()
        print(f"{message.partition()} {millis} {message.value().decode()}", flush=True)


if __name__ == "__main__":
    main()
