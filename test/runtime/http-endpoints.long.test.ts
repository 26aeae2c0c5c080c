// The attacks with large answers.
import './http-endpoints.test.ts';
