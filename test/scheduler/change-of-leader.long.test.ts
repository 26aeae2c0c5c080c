// All Pods and all changes of the leader.
import './change-of-leader.test.ts';
