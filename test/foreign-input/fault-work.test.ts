import test from 'ava';
import { Faults, MAX_FAULTS } from '../../runtime/decode.ts';

/** As many wrong items as a body of 1 MiB has. */
const FAULTS = 500_000;
const PATHS = Array.from({ length: 1_000 }, (_, index) => `spec.containers[${index}]`);

/** The processor time of a body whose first faults are of so many fields, and all others of one field, in ms. */
function cpuMs(fields: number): number {
  const faults = new Faults();
  for (let index = 0; index < fields; index++) faults.add(`spec.field${index}`, 'an object', 1);
  for (let index = fields; index < MAX_FAULTS; index++) faults.add(`spec.first[${index}]`, 'an object', 1);
  const begun = process.cpuUsage();
  for (let index = 0; index < FAULTS; index++) faults.add(PATHS[index % PATHS.length] ?? '', 'an object', 1);
  const { user, system } = process.cpuUsage(begun);
  return (user + system) / 1_000;
}

test('Faults: a fault beyond the first ones costs the same, however many fields have one', (t) => {
  cpuMs(1);
  const [one, many] = [Math.min(cpuMs(1), cpuMs(1)), Math.min(cpuMs(MAX_FAULTS), cpuMs(MAX_FAULTS))];
  t.log(`${one.toFixed(0)} ms with one field, ${many.toFixed(0)} ms with ${MAX_FAULTS}`);
  t.true(many < 4 * one + 20, `${many} ms against ${one} ms`);
  // Looking through all that is kept took 2,500 ms.
  t.true(many / FAULTS < 0.001, `${many} ms for ${FAULTS} faults`);
});
