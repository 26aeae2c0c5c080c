// The cases of the table that `make test` leaves out.
import './cli-doctor.test.ts';
