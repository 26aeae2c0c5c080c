// The pairs of layout and wiring, and the repairs, that `make test` leaves out.
import './bridge-pod.test.ts';
