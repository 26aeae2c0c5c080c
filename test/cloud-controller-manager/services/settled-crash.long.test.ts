// The deaths that `make test` leaves out.
import './settled-crash.test.ts';
