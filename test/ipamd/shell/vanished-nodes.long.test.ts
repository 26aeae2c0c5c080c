// The cases of the table that `make test` leaves out.
import './vanished-nodes.test.ts';
