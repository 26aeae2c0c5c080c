// The cases of the table that `make test` leaves out.
import './chaos.test.ts';
