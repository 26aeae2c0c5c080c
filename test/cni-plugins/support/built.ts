import { buildExecutables, type ExecutableName } from '../../../tools/build.ts';
import { binDirOf } from '../../support/executables.ts';

/** Brings an executable up to date and returns the folder that it lies in. */
export async function buildExecutable(name: ExecutableName): Promise<string> {
  await buildExecutables([name]);
  return binDirOf(name);
}
