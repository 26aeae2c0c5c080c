// The cases of the table that `make test` leaves out.
import './gr-pods.test.ts';
