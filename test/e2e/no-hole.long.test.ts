// The cases of the table that `make test` leaves out.
import './no-hole.test.ts';
