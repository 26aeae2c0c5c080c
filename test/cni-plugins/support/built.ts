import { buildExecutables, type ExecutableName } from '../../../tools/build.ts';

/** Brings an executable up to date and returns the folder that it lies in. */
export async function buildExecutable(name: ExecutableName): Promise<string> {
  const { binDir } = await buildExecutables([name]);
  return binDir;
}
