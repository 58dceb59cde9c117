-- Between which tellings a message was last given to whoever reads: one more than how often it was told
-- again before; 0 if it was not given yet. Giving it puts the next telling off once, and not each time.
ALTER TABLE unread_messages ADD COLUMN given BIGINT NOT NULL DEFAULT 0;
