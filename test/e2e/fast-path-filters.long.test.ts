// Long: waits the 5 s after which the agent attaches the fast path to the link of a new Pod.
import './fast-path-filters.test.ts';
