import type { OptionTable } from './command.ts';

/** Options of commands that ask the cloud. */
export const CLOUD_OPTIONS = {
  region: {
    type: 'string',
    summary: "region of the cloud; default TENCENTCLOUD_REGION or the instance's",
    metavar: 'REGION',
  },
  endpoint: {
    type: 'string',
    summary: "another place of the cloud's API, such as http://127.0.0.1:8080",
    metavar: 'URL',
  },
} as const satisfies OptionTable;
