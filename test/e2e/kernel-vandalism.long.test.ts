// The same in both rule modes, with 500 steps each.
import './kernel-vandalism.test.ts';
