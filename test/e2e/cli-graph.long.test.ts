// The cases of the table that `make test` leaves out.
import './cli-graph.test.ts';
