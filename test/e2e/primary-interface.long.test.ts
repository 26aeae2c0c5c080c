// The cases of the table that `make test` leaves out.
import './primary-interface.test.ts';
