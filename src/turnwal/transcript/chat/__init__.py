"""The form of Chat Completions, which OpenAI and Mistral speak: messages with a role, calls beside the content."""
