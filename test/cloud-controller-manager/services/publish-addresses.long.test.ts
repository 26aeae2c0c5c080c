// The deaths that `make test` leaves out.
import './publish-addresses.test.ts';
