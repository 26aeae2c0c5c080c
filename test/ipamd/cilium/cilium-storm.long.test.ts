// The seeds that `make test` leaves out.
import './cilium-storm.test.ts';
