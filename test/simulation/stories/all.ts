import type { Story } from '../story.ts';
import { storm } from './storm.ts';
import { warmAndBack } from './supply.ts';

/** Every story, by the name that `main.ts --story` takes. */
export const STORIES: Readonly<Record<string, Story>> = { warmAndBack, storm };
