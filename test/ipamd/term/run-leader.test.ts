import test from 'ava';
import { handleEnd } from '../../../ipamd/term/run-leader.ts';

test('handleEnd: of a term that is over only the abort itself goes unsaid', (t) => {
  const term = new AbortController();
  const logged: unknown[] = [];
  const log = {
    error: (_text: string, fields?: Readonly<Record<string, unknown>>) => void logged.push(fields?.['error']),
  };
  const fault = new Error('a fault');
  t.throws(() => handleEnd(fault, term.signal, log), { is: fault });
  term.abort(new Error('the term is over'));
  handleEnd(term.signal.reason, term.signal, log);
  handleEnd(new DOMException('aborted', 'AbortError'), term.signal, log);
  t.deepEqual(logged, []);
  handleEnd(fault, term.signal, log);
  t.deepEqual(logged, [fault]);
});
