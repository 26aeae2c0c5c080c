// The cases of the table that `make test` leaves out.
import './planted-faults.test.ts';
