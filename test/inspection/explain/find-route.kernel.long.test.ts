// The cases of the table that `make test` leaves out.
import './find-route.kernel.test.ts';
