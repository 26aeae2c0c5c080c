// The cases of the table that `make test` leaves out.
import './edited-records.test.ts';
