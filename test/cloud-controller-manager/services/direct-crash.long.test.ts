// The deaths that `make test` leaves out.
import './direct-crash.test.ts';
