// The cases of the table that `make test` leaves out.
import './eni-away.test.ts';
