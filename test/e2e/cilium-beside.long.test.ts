// One minute of two writers.
import './cilium-beside.test.ts';
