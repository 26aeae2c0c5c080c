import { type Played, type PlayOptions, play } from '../story.ts';
import type { Violation } from '../world.ts';
import type { Script } from './deed.ts';
import { scripted } from './scripted.ts';
import { shrink } from './shrink.ts';

/** Plays a script. */
export async function playScript(
  script: Script,
  options: Pick<PlayOptions, 'keepsLines' | 'endMs'> = {},
): Promise<Played> {
  return await play(scripted(`script ${script.seed}`, script), options);
}

/** Plays a script that fails again and again, until what is left of it is needed. */
export async function shrinkScript(script: Script, seen: Violation): ReturnType<typeof shrink> {
  return await shrink(script, seen, async (smaller, endMs) => (await playScript(smaller, { endMs })).violations[0]);
}
