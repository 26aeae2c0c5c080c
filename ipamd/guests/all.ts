import type { Term } from '../calls/term.ts';
import type { Guest } from '../term/guest.ts';
import { CILIUM } from './cilium/guest.ts';
import { EIPS } from './eip/guest.ts';
import { podCidrs } from './pod-cidrs/guest.ts';
import { RECORDS } from './records/guest.ts';
import { STATIC_ADDRESSES } from './static/guest.ts';

/** Makes the guests of the process, in the order in which they start. Made before the informers start. */
export function makeGuests(process: Pick<Term, 'config' | 'nodes' | 'clock'>): readonly Guest[] {
  return [STATIC_ADDRESSES, EIPS, podCidrs(process), CILIUM, RECORDS];
}
