"""The parts of `palio bench broker`: servers, clients of several systems, and how they are measured."""
