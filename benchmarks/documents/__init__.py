"""The parts of `palio bench xml`: documents, yardsticks, brokers that know families, and what is measured."""
