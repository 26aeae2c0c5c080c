// The cases of the table that `make test` leaves out.
import './living-pods.test.ts';
