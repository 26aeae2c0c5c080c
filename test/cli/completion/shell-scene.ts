import { execFileSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createTempDir } from '../../support/temp-dir.ts';

const MAIN = join(import.meta.dirname, '../../../cli/main.ts');

/** A folder with a `tke-eni` that runs the sources, and the completion script of a shell beside it. */
type ShellScene = {
  readonly dir: string;
  /** Path of the script. */
  readonly script: string;
  /** Environment with that folder first in PATH, and no home: nobody's own settings. */
  readonly env: Readonly<Record<string, string>>;
  readonly [Symbol.dispose]: () => void;
};

/** Makes a scene. */
export function createShellScene(shell: 'bash' | 'zsh' | 'fish'): ShellScene {
  const dir = createTempDir('shell');
  const program = dir.join('tke-eni');
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`);
  chmodSync(program, 0o755);
  const env = {
    PATH: `${dir.path}:/usr/sbin:/usr/bin:/sbin:/bin`,
    HOME: dir.path,
    LC_ALL: 'C.UTF-8',
    ZDOTDIR: dir.path,
  };
  const script = dir.join(shell === 'zsh' ? '_tke-eni' : `tke-eni.${shell}`);
  writeFileSync(script, execFileSync(program, ['completion', shell]));
  return { dir: dir.path, script, env, [Symbol.dispose]: () => dir.close() };
}
