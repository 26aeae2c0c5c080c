// The cases that `make test` leaves out.
import './fast-path.test.ts';
