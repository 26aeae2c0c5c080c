// The cases of the table that `make test` leaves out.
import './cloud.test.ts';
