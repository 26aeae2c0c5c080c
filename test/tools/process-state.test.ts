import test from 'ava';
import { changesBetween, readProcessState } from '../../tools/process-state.ts';

/** What a test may do to its process, how it is undone, and its name. */
const CHANGES: readonly (readonly [string, () => () => void])[] = [
  [
    'environment',
    () => {
      process.env['LEFT_BY_A_TEST'] = '1';
      return () => delete process.env['LEFT_BY_A_TEST'];
    },
  ],
  [
    'working directory',
    () => {
      const home = process.cwd();
      process.chdir('/');
      return () => process.chdir(home);
    },
  ],
  [
    'listeners of SIGUSR2',
    () => {
      const listener = (): void => {};
      process.on('SIGUSR2', listener);
      return () => process.off('SIGUSR2', listener);
    },
  ],
  [
    'globalThis.setTimeout',
    () => {
      const real = globalThis.setTimeout;
      globalThis.setTimeout = Object.assign(() => real(() => {}, 0), real);
      return () => {
        globalThis.setTimeout = real;
      };
    },
  ],
  [
    'globalThis.fetch',
    () => {
      const { fetch } = globalThis;
      Reflect.deleteProperty(globalThis, 'fetch');
      return () => {
        globalThis.fetch = fetch;
      };
    },
  ],
  [
    'globalThis.leftByATest',
    () => {
      Reflect.set(globalThis, 'leftByATest', 1);
      return () => Reflect.deleteProperty(globalThis, 'leftByATest');
    },
  ],
];

for (const [name, change] of CHANGES) {
  test.serial(`changesBetween: ${name}`, (t) => {
    const before = readProcessState();
    const undo = change();
    const changes = changesBetween(before, readProcessState());
    undo();
    t.deepEqual(changes, [name]);
    t.deepEqual(changesBetween(before, readProcessState()), []);
  });
}
