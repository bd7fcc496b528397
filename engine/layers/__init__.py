"""The parts of a decoder; each holds its weights and works on flat rows [rows, hidden_size]."""
