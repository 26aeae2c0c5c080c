// The deaths that `make test` leaves out.
import './service-crash.test.ts';
