// The cases of the table that `make test` leaves out.
import './exclusive-life.test.ts';
